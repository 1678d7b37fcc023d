import { type InstalledRelease, type UpdatePlan } from '@platform/core/updates/record'
import { type startFeed } from './feed.ts'
import { type Behaviour, MemoryTarget } from './memory-target.ts'
import { accept, passingTime } from './updating.ts'

/** Updates from one tiny release to the next, each of versions that no other one has. */
export function updatesFrom({ released }: Pick<Awaited<ReturnType<typeof startFeed>>, 'released'>) {
  let count = 0
  async function newReleases(): Promise<{ older: InstalledRelease; newer: InstalledRelease }> {
    count++
    return { older: await released(`1.${count}.0`), newer: await released(`1.${count}.1`) }
  }

  /** An update that waits for its worker; time passes while its release is watched. */
  async function applying(behaviour?: Behaviour) {
    const { older, newer } = await newReleases()
    const target = new MemoryTarget(older)
    target.hook = { before: passingTime }
    if (behaviour !== undefined) target.behaviours.set(newer.version, behaviour)
    const plan: UpdatePlan = { action: 'apply', release: newer, before: older }
    return { target, plan, older, newer, accepted: await accept(plan) }
  }
  return { newReleases, applying }
}
