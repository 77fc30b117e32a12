"""Training data for any toolkit: data folders, preparation, dictionaries, texts that are drawn, and batches by length.

folder         the folder that a training reads
making         makes one, from plain text or from text that is segmented already; `bpe-dropout data` and `convert`
preparation    how raw text becomes words, and words text again
moses          the same as Moses' scripts do it: words and punctuation, escapes
vocabulary     dictionaries of pieces
texts          a text as a method sees it: plain, or drawn
pairs          the source and target of all sentence pairs, and batches of them, padded
batches        which sentences make a batch, by their lengths

Needs neither torch nor fairseq.
"""
