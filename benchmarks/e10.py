"""E10 (IDCA, section 7.2): weak partial demographic parity. Options and output as in e9.py.

python benchmarks/e10.py
python benchmarks/e10.py --quick
"""

from e9 import main

if __name__ == "__main__":
    main("e10")
