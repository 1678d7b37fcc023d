import { callsOf } from '../../test/support/store-calls.ts'
import { type Effort, type Figure, none } from '../part.ts'
import { randomOf, seedFor } from '../random.ts'
import { type Guesses, secrets, signIns } from './guesses.ts'
import { hashes } from './hashes.ts'
import { areaOf } from './pairs.ts'

/** Signs in slowly, so that few are enough. */
const signInPairs = 200
/** A comparison that ends early saves some billionths of a second of one that takes a thousandth. */
const secretPairs = 3000

/** What a guess costs, as far as it can be counted. */
async function workOf(guess: Guesses['first'], status: number): Promise<string> {
  const before = hashes()
  let seen = 0
  const calls = await callsOf(async () => {
    seen = (await guess()).status
  })
  if (seen !== status) throw new Error(`A guess was answered with ${seen}, not ${status}.`)
  return `${calls} calls of the store and ${hashes() - before} hashes`
}

/** That two kinds of guesses do the same work. */
async function sameWork(guesses: readonly Guesses[], say: Effort['say']): Promise<Figure> {
  let different = 0
  for (const { claim, first, second, status } of guesses) {
    const [one, other] = [await workOf(first, status), await workOf(second, status)]
    if (one === other) continue
    different++
    say(`${claim}: ${one}, and ${other}`)
  }
  const of = `${guesses.length} pairs`
  return none(
    'pairs of guesses that differ in their calls of the store or in the passwords that are hashed',
    different,
    of,
  )
}

async function sameTime(guesses: Guesses, count: number, margin: number, { seed, say }: Effort): Promise<Figure> {
  const { claim } = guesses
  const { area, tries } = await areaOf({ ...guesses, count, margin }, randomOf(seedFor(seed, claim)))
  const seen = `${area.toFixed(3)}${tries === 1 ? '' : ` at the try ${tries}`}`
  say(`${claim}: ${seen}`)
  const [least, most] = [0.5 - margin, 0.5 + margin].map((bound) => bound.toFixed(2))
  return {
    claim: `how well the time tells two guesses apart (${count} of each): ${claim}`,
    goal: `${least} to ${most}`,
    seen,
    isMet: Math.abs(area - 0.5) <= margin,
  }
}

export async function figuresOf(effort: Effort): Promise<Figure[]> {
  const [ofNames, ofSecrets] = [await signIns(), await secrets()]
  const figures = [await sameWork([...ofNames, ...ofSecrets], effort.say)]
  if (effort.isShort) return figures
  for (const guesses of ofNames) figures.push(await sameTime(guesses, signInPairs, 0.1, effort))
  for (const guesses of ofSecrets) figures.push(await sameTime(guesses, secretPairs, 0.05, effort))
  return figures
}
