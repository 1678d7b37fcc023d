import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeDeploymentDigest } from '../../scripts/deploy/digest.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const names = ['health', 'queue/batches']

async function digestsOf(texts: readonly string[], stage = 'dev', set: Record<string, string> = {}): Promise<string[]> {
  await using folder = await temporaryFolder()
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder.path, name), { recursive: true })
    await writeFile(join(folder.path, name, 'index.mjs'), texts[index] ?? '')
  }
  const write = async () => {
    await writeDeploymentDigest(folder.path, stage, set)
    return Promise.all(names.map((name) => readFile(join(folder.path, name, 'deployment.json'), 'utf8')))
  }
  const firstFolder = await write()
  expect(await write(), 'written twice').toEqual(firstFolder)
  return firstFolder
}

test('the digest depends only on code, stage and settings', async () => {
  const [digests, repeatedDigests] = [await digestsOf(['a', 'b']), await digestsOf(['a', 'b'])]
  expect(digests).toEqual(repeatedDigests)
  expect(new Set(digests).size).toBe(1)
})

test.each([
  ['the code of one function', () => digestsOf(['a', 'changed'])],
  ['a setting', () => digestsOf(['a', 'b'], 'dev', { PLAT_LOG_LEVEL: 'warn' })],
  ['the stage', () => digestsOf(['a', 'b'], 'staging')],
])('changes the digest of every function: %s', async (_, changed) => {
  const digestsBefore = await digestsOf(['a', 'b'])
  for (const [index, digest] of (await changed()).entries()) expect(digest).not.toBe(digestsBefore[index])
})
