import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { Program } from '../support/program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readTree } from '../support/read-tree.ts'

const unpacker = fileURLToPath(import.meta.resolve('./unpacker.ts'))
const start = (store: string, how: 'whole' | 'stuck') =>
  new Program(process.execPath, [unpacker, store, how], { cwd: store, env: {} })

test('a process that is killed while it unpacks leaves nothing that is taken for whole, nor in the way', async () => {
  await using store = await temporaryFolder()
  const killed = start(store.path, 'stuck')
  await killed.writes(/stuck/)
  await killed.kill()
  const [draft, ...others] = await readdir(store.path)
  expect(draft).toMatch(/^sha256-[0-9a-f]{64}\.\d+-0\.tmp$/)
  expect(others).toEqual([])
  await using second = start(store.path, 'whole')
  const [root] = await second.writes(/\S+\/root/)
  expect(await second.ended).toMatchObject({ exitCode: 0 })
  expect(await readdir(store.path)).toEqual([draft?.slice(0, 'sha256-'.length + 64)])
  expect(Object.keys(await readTree(root))).toHaveLength(211)
})

test('a process leaves alone what another one is unpacking', async () => {
  await using store = await temporaryFolder()
  await using slow = start(store.path, 'stuck')
  await slow.writes(/stuck/)
  await using fast = start(store.path, 'whole')
  await fast.writes(/\S+\/root/)
  expect(await readdir(store.path)).toHaveLength(2)
  const draft = (await readdir(store.path)).find((name) => name.endsWith('.tmp')) ?? ''
  expect(Object.keys(await readTree(join(store.path, draft, 'root')))).toHaveLength(210)
})

test('processes that unpack the same at once all find it whole', async () => {
  await using store = await temporaryFolder()
  await using processes = new AsyncDisposableStack()
  const programs = [1, 2, 3, 4].map(() => processes.use(start(store.path, 'whole')))
  const roots = await Promise.all(programs.map(async (program) => (await program.writes(/\S+\/root/))[0]))
  expect(new Set(roots).size).toBe(1)
  expect(Object.keys(await readTree(roots[0] ?? ''))).toHaveLength(211)
  const ends = await Promise.all(programs.map(({ ended }) => ended))
  expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
  expect(await readdir(store.path)).toHaveLength(1)
})
