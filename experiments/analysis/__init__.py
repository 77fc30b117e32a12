"""The paper's tables and figures from result files, one file each; and the measurements that some of them need."""
