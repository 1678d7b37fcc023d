import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { version as checkoutVersion } from '@platform/core/lib/version'
import { localSupervisor } from '@platform/worker/updates/target/local-supervisor'
import type { StagedRelease } from '@platform/worker/updates/target/port'
import { expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { runProgram } from '../runner/program.ts'
import { temporaryFolder, writeFunctions } from '../runner/support.ts'
import { ask } from './clients.ts'
import { currentIn, folderOf, named, releaseOf, saying } from './support.ts'

const serve = fileURLToPath(new URL('serve.ts', import.meta.url))
const checkout = { version: checkoutVersion }
const [one, two] = [releaseOf('9.0.0'), releaseOf('9.1.0')]
const own: StagedRelease = { ...checkout, functionNames: [], fetchFunction: async () => new Uint8Array() }

/** A runner in a process of its own, on data that outlive it. */
async function run(folder: string) {
  const functionsDir = await writeFunctions(folder, { health: saying('own') })
  const program = runProgram(serve, { arguments: [join(folder, 'data'), functionsDir] })
  const { url, updateHost } = JSON.parse(await program.says('Platform ready at '))
  const version = async () => (await ask(`${url}/health/live`)).version
  return { ...program, target: localSupervisor(updateHost), version }
}

type Runner = Awaited<ReturnType<typeof run>>

/** The walk of an update, as far as a step. */
async function walk({ target }: Runner, release: StagedRelease, step: number): Promise<void> {
  const before = await target.current()
  const its = release.digest === undefined ? checkout : named(release)
  await target.stage(release)
  if (step > 0) await target.shift(its, 10)
  if (step > 1) await target.shift(its, 100)
  if (step > 2) await target.commit(its, before)
}

test('a runner that is killed after any step serves what its note says, and the update is done from its beginning', async () => {
  await using folder = await temporaryFolder()
  let expected = 'own'
  const [first, second, back] = [[one, '9.0.0'] as const, [two, '9.1.0'] as const, [own, 'own'] as const]
  for (const [release, saysNow] of isLong ? [first, second, back] : [first]) {
    for (const step of isLong ? [0, 1, 2, 3] : [1, 3]) {
      await using runner = await run(folder.path)
      expect(await runner.target.current()).toMatchObject({ version: expected === 'own' ? checkoutVersion : expected })
      expect(await Promise.all([1, 2, 3].map(runner.version))).toEqual([expected, expected, expected])
      await walk(runner, release, step)
      if (step === 3) expected = saysNow
      expect((await currentIn(join(folder.path, 'data'))) ?? 'own').toBe(expected)
    }
  }
}, 180_000)

test.runIf(isLong)(
  'a runner that is killed at any moment serves one release as a whole, the one that its note names',
  async () => {
    await using folder = await temporaryFolder()
    for (let round = 0; round < 6; round++) {
      await using runner = await run(folder.path)
      expect(await runner.version()).toBe((await currentIn(join(folder.path, 'data'))) ?? 'own')
      const changing = (async () => {
        for (;;) for (const release of [one, two]) await walk(runner, release, 3)
      })()
      const broken = expect(changing).rejects.toThrow()
      // A moment of the walk that differs each time.
      await new Promise((resolve) => setTimeout(resolve, 150 + round * 97))
      runner.child.kill('SIGKILL')
      await broken
    }
    await using runner = await run(folder.path)
    expect(await runner.version()).toBe((await currentIn(join(folder.path, 'data'))) ?? 'own')
  },
  180_000,
)

test('a release whose folder is gone ends the start with one line that says what to do', async () => {
  await using folder = await temporaryFolder()
  {
    await using runner = await run(folder.path)
    await walk(runner, one, 3)
  }
  const note = join(folder.path, 'data/releases/current.json')
  await rm(join(folder.path, 'data/releases', folderOf(one)), { recursive: true })
  await expect(run(folder.path)).rejects.toThrow(
    `Release 9.0.0 cannot be started: its folder is missing. Remove ${note} to start with version`,
  )
  await rm(note)
  await using runner = await run(folder.path)
  expect(await runner.version()).toBe('own')
})
