import { startVersion } from '@platform/local/releases/version'
import { expect, test } from 'vitest'
import { temporaryFolder, writeFunctions } from '../runner/support.ts'

test.for([
  ['waits for ever', `await new Promise(() => {})\nexport const handler = () => 1`],
  ['is busy for ever', `for (;;);\nexport const handler = () => 1`],
] as const)('functions of which one %s when it is imported do not start, and leave no thread', async ([, source]) => {
  await using folder = await temporaryFolder()
  const functionsDir = await writeFunctions(folder.path, { hanging: source })
  const lines: string[] = []
  const settings = { functionThreads: 2, functionsDir }
  const log = (line: string) => lines.push(line)
  const starting = startVersion({ settings, environment: {}, warmUpTimeoutMs: 500, log }, ['hanging', 'health'])
  await expect(starting).rejects.toThrow('hanging did not answer within 500 ms')
  expect(lines).toEqual([])
})
