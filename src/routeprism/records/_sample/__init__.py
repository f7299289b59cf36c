"""The generator behind the bundled sample: text tables, a cast, a plan, its wording."""
