// Files that share a process share its settings, and so one table: this file runs for each of them, what it imports once.
await import('../../test/support/own-table.ts')
