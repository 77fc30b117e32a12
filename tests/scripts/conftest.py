import pytest

pytest.importorskip("yaml", reason="the tests of the reproduction need what `make setup` installs")
