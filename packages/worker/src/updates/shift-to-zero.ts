import { log } from '@platform/core/log'
import { type UpdatePlan } from '@platform/core/updates/record'
import { type UpdateTarget } from './target/port.ts'

/** Takes a release its share, as well as that can be done: it is to get nothing while nobody watches it. */
export async function shiftToZero(target: UpdateTarget, { release }: UpdatePlan): Promise<void> {
  try {
    await target.shift(release, 0)
  } catch (cause) {
    log('warn', 'A release keeps what share it has', { version: release.version, cause })
  }
}
