import { seededRandom } from '../support/random.ts'

/** Choices that a seed repeats. */
export interface Random {
  /** A whole number from 0, less than this. */
  below: (count: number) => number
  /** Whether something happens that happens with this probability. */
  isLucky: (probability: number) => boolean
  pick: <Thing>(things: readonly Thing[]) => Thing
}

export function randomOf(seed: number): Random {
  const next = seededRandom(seed)
  const below = (count: number): number => Math.floor(next() * count)
  const pick = <Thing>(things: readonly Thing[]): Thing => {
    const thing = things[below(things.length)]
    if (things.length === 0) throw new Error('There is nothing to choose from.')
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- below() is an index of the list
    return thing as Thing
  }
  return { below, pick, isLucky: (probability) => next() < probability }
}

/** Another seed for another purpose, so that what one part of a run chooses does not shift what another one does. */
export const seedFor = (seed: number, purpose: string): number =>
  Buffer.from(purpose).reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193), seed ^ 0x811c9dc5)
