import { expect, test } from 'vitest'
import { missesOf, runPart } from '../../proof/child.ts'
import { partNames, suites } from '../../proof/parts.ts'

test.for(partNames.filter((name) => !suites.includes(name)))(
  'the short version of the proof "%s" meets every goal',
  { timeout: 240_000 },
  async (name) => {
    const shown = await runPart(name, 'short', 20261122)
    expect(shown.figures).not.toEqual([])
    expect(missesOf(shown)).toEqual([])
  },
)
