import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FactPrograms } from '@platform/relay/fact-programs'
import { localExecutor } from '@platform/relay/executor/local'
import { factsIn } from '@platform/relay/facts'
import { expect, test, vi } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { ended, Stage } from './support/stage.ts'

async function factsOf(programs: Record<string, string>, mode = 0o755, prepare = (_path: string) => {}) {
  await using folder = await temporaryFolder()
  const path = join(folder.path, "fact's")
  mkdirSync(path, { mode: 0o755 })
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(path, name), text)
    chmodSync(join(path, name), mode)
  }
  prepare(path)
  const factPrograms = new FactPrograms(path, localExecutor(join(folder.path, 'work')))
  return await factPrograms.run(new AbortController().signal)
}

const print = (text: string) => `#!/bin/sh\nprintf '${text}'\n`

test.each([
  [
    'lines of all programs',
    { a: print('rack=B 12\\n\\nrole = db \\r\\n'), b: print('zone=') },
    { rack: 'B 12', role: 'db', zone: '' },
  ],
  ['control characters as spaces', { a: print('a=x\\033[1m\\000y') }, { a: 'x [1m y' }],
  ['no invalid lines', { a: print('Rack=1\\n=2\\nplain\\n__proto__=3\\nok=4') }, { ok: '4' }],
  ['nothing that is not UTF-8', { a: print('a=\\377'), b: print('b=1') }, { b: '1' }],
  ['nothing of a program that fails', { a: `${print('a=1')}exit 3`, b: print('b=1') }, { b: '1' }],
  ['nothing of a program that never stops writing', { a: '#!/bin/sh\nyes a=1', b: print('b=1') }, { b: '1' }],
  [
    'no standard error, and the environment of scripts',
    { a: '#!/bin/sh\necho x=1 >&2; echo home="$PLAT_ENROLLMENT_TOKEN"' },
    { home: '' },
  ],
])('--facts-dir adds %s', async (_, programs, expected) => {
  expect(await factsOf(programs)).toEqual(expected)
})

test('--facts-dir adds at most 32 facts, and runs no program that others can change', async () => {
  const lines = Array.from({ length: 40 }, (_, index) => `k${index}=1`).join('\\n')
  expect(Object.keys(await factsOf({ a: print(lines) }))).toHaveLength(32)
  for (const mode of [0o777, 0o775, 0o757]) expect(await factsOf({ a: print('a=1') }, mode)).toEqual({})
  expect(await factsOf({ a: print('a=1') }, 0o644)).toEqual({})
})

test('a damaged entry of --facts-dir does not disable the others, and a program of another user does not run', async () => {
  const programs = { a: print('a=1'), b: print('b=1') }
  const link = (path: string) => symlinkSync('missing', join(path, '0'))
  expect(await factsOf(programs, 0o755, link)).toEqual({ a: '1', b: '1' })
  if (process.getuid?.() !== 0) return
  expect(await factsOf(programs, 0o755, (path) => chownSync(join(path, 'a'), 2, 2))).toEqual({ b: '1' })
  expect(await factsOf(programs, 0o755, (path) => chownSync(path, 2, 2))).toEqual({})
})

test('a program of --facts-dir that hangs ends after a kill of the relay', async () => {
  await using folder = await temporaryFolder()
  const pidFile = join(folder.path, 'pid')
  mkdirSync(join(folder.path, 'facts'), { mode: 0o755 })
  writeFileSync(
    join(folder.path, 'facts/a'),
    `#!/bin/sh\necho $$ >${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 1000\n`,
    {
      mode: 0o755,
    },
  )
  await using stage = await Stage.start({ args: ['--facts-dir', join(folder.path, 'facts')] })
  await vi.waitFor(() => expect(existsSync(pidFile)).toBe(true), { timeout: 20_000 })
  await stage.relay.end('SIGKILL')
  await ended(readFileSync(pidFile, 'utf8').trim())
}, 60_000)

test('facts that are missing or invalid are omitted, and free space changes in steps', () => {
  expect(factsIn('os=\ncpus=0\nmemoryKiB=many\nfreeKiB=1\nshell=evil\n', undefined)).toEqual({ shells: [] })
  const free = (kib: number, kibBefore?: number) =>
    factsIn(`diskKiB=1000\nfreeKiB=${kib}`, kibBefore === undefined ? undefined : { rootDiskFreeBytes: kibBefore })
      .rootDiskFreeBytes
  const firstFree = free(524) ?? 0
  expect([free(526, firstFree), free(545, firstFree), free(400, firstFree)]).toEqual([firstFree, firstFree, 409_600])
})
