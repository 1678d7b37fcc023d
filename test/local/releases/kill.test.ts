import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { StagedRelease } from '@platform/worker/updates/target/port'
import { expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { writeFunctions } from '../support/platform.ts'
import { runServer } from '../support/program.ts'
import { request } from './clients.ts'
import { checkout, currentIn, folderOf, identityOf, releaseOf, reporting, stagedCheckout, targetOf } from './support.ts'

const [one, two] = [releaseOf('9.0.0'), releaseOf('9.1.0')]

/** A platform in a process, on data that outlive it. */
async function run(folder: string) {
  const functionsDir = await writeFunctions(folder, { health: reporting('checkout') })
  const program = await runServer('platform', join(folder, 'data'), functionsDir)
  const version = async () => (await request(`${program.address.url}/health/live`)).version
  return { ...program, target: targetOf(program.address), version }
}

/** Performs the first steps of an update. */
async function update({ target }: Awaited<ReturnType<typeof run>>, release: StagedRelease, steps: number) {
  const before = await target.current()
  await target.stage(release)
  if (steps > 1) await target.shift(identityOf(release), 10)
  if (steps > 2) await target.shift(identityOf(release), 100)
  if (steps > 3) await target.commit(identityOf(release), before)
}

test('after a kill at any step the platform serves the committed release, or ends with advice if it is missing', async () => {
  await using folder = await temporaryFolder()
  let committed = 'checkout'
  for (const release of isLong ? [two, stagedCheckout, one] : [one]) {
    for (const steps of isLong ? [1, 2, 3, 4] : [2, 4]) {
      await using platform = await run(folder.path)
      const version = committed === 'checkout' ? checkout.version : committed
      expect(await platform.target.current()).toMatchObject({ version })
      expect(await Promise.all([1, 2, 3].map(platform.version))).toEqual([committed, committed, committed])
      await update(platform, release, steps)
      if (steps === 4) committed = release === stagedCheckout ? 'checkout' : release.version
      expect((await currentIn(join(folder.path, 'data'))) ?? 'checkout').toBe(committed)
    }
  }

  const releasesDir = join(folder.path, 'data/releases')
  await rm(join(releasesDir, folderOf(one)), { recursive: true })
  const advice = `its folder is missing. Remove ${join(releasesDir, 'current.json')} to start with version`
  await expect(run(folder.path)).rejects.toThrow(`Release 9.0.0 cannot be started: ${advice}`)
}, 180_000)
