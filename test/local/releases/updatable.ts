import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { functions } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { version as checkoutVersion } from '@platform/core/lib/version'
import type { StagedRelease } from '@platform/worker/updates/target/port'
import { platformIn, temporaryFolder } from '../runner/support.ts'
import { ask } from './clients.ts'
import { named, saying, targetOf } from './support.ts'

/** What the platform was deployed with. */
export const checkout = { version: checkoutVersion }
const own = Object.fromEntries(Object.keys(functions).map((name) => [name, saying('own')]))
const sources = { ...own, [modulePaths.function]: saying('own'), [fallback.function]: saying('own') }

/** A platform whose functions say `own`, with the target of its updates. */
export async function startUpdatable(more: Record<string, string> = {}) {
  const folder = await temporaryFolder()
  const platform = await platformIn(folder.path, { ...sources, ...more })
  return {
    ...platform,
    target: targetOf(platform),
    dataDir: join(folder.path, 'data'),
    releases: async () => (await readdir(join(folder.path, 'data/releases'))).toSorted(),
    async [Symbol.asyncDispose]() {
      await platform.stop()
      await folder[Symbol.asyncDispose]()
    },
  }
}

export type Updatable = Awaited<ReturnType<typeof startUpdatable>>

/** What versions requests are answered by, one after the other. */
export const versionsOf = async ({ url }: Updatable, count: number, path = '/health/live') => {
  const said: string[] = []
  for (let asked = 0; asked < count; asked++) said.push((await ask(`${url}${path}`)).version)
  return said
}

/** Stages and commits, as an update does when all goes well. */
export async function apply({ target }: Updatable, release: StagedRelease) {
  const before = await target.current()
  await target.stage(release)
  await target.shift(named(release), 100)
  await target.commit(named(release), before)
}
