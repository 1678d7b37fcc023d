import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeDeploymentDigest } from '../../scripts/deploy/digest.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const names = ['health', 'queue/jobs']

/** Builds functions that hold these texts, marks them for a stage and its settings, and answers the mark of each. */
async function marksOf(texts: readonly string[], stage = 'dev', set: Record<string, string> = {}): Promise<string[]> {
  await using folder = await temporaryFolder()
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder.path, name), { recursive: true })
    await writeFile(join(folder.path, name, 'index.mjs'), texts[index] ?? '')
  }
  const marks = async () => {
    await writeDeploymentDigest(folder.path, stage, set)
    return Promise.all(names.map((name) => readFile(join(folder.path, name, 'deployment.json'), 'utf8')))
  }
  const first = await marks()
  expect(await marks(), 'marked twice').toEqual(first)
  return first
}

test('the same code, stage and settings have the same mark, wherever they were built', async () => {
  const [one, other] = [await marksOf(['a', 'b']), await marksOf(['a', 'b'])]
  expect(one).toEqual(other)
  expect(new Set(one).size).toBe(1)
})

test.each([
  ['the code of one function', () => marksOf(['a', 'changed'])],
  ['a setting', () => marksOf(['a', 'b'], 'dev', { PLAT_LOG_LEVEL: 'warn' })],
  ['the stage', () => marksOf(['a', 'b'], 'staging')],
])('another mark for every function: %s', async (_, changed) => {
  const before = await marksOf(['a', 'b'])
  for (const [index, mark] of (await changed()).entries()) expect(mark).not.toBe(before[index])
})
