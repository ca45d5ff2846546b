"""python -m drakit.cli is the drakit command."""

import sys

from drakit.cli import main

sys.exit(main())
