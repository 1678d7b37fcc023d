import { waitFor } from '../../../support/wait-for.ts'
import { calm, type Scene } from './withholding.ts'

/** Messages that others have lost would come after all. */
export const sweeps = [calm]

/** Runs the sweep until something has come of it. */
export const swept = <Found>(
  scene: Scene,
  what: string,
  look: () => Promise<Found | undefined | false>,
): Promise<Found> =>
  waitFor(what, async () => {
    await scene.tick('schedule/sweep')
    return look()
  })
