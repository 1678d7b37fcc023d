import { test } from 'vitest'
import { missesOf, runPart } from '../../proof/child.ts'
import { partNames, suites } from '../../proof/parts.ts'
import { missing } from '../support/peers.ts'

/** A part that this machine lacks something for is not here. */
const lack = missing('unshare', 'ip')

// Each is a process of its own that waits for most of its time.
test.concurrent.for(partNames.filter((name) => !suites.includes(name) && (name !== 'offline' || lack === '')))(
  'the short version of the proof "%s" meets every goal',
  { timeout: 240_000 },
  async (name, { expect }) => {
    const shown = await runPart(name, 'short', 20261122)
    expect(shown.figures).not.toEqual([])
    expect(missesOf(shown)).toEqual([])
  },
)
