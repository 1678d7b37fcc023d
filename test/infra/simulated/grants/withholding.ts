import { setTimeout as delay } from 'node:timers/promises'
import type { Platform } from '../../../conformance/support/platform.ts'
import { waitFor, abortWaitsOn } from '../../../support/wait-for.ts'
import type { AccessDenial } from '../../../simulator/aws/iam-proxy.ts'
import { allowing, type Statement } from '../../../simulator/graph/policy.ts'
import type { Simulator } from '../../../simulator/simulator.ts'
import { grantOf } from '../../grant.ts'

/** What becomes of journeys while a grant is taken away. */

/** What every act touches: nothing happens by itself that makes up for what was lost. */
export const calm = 'calm'

/** What an act plays on: the simulated platform, as one of its organisations and its administrator see it. */
export interface Scene {
  simulator: Simulator
  platform: Platform
  /** Runs a function of a clock at once, by its name in the contract. */
  tick: (name: string) => Promise<void>
}

/** A journey, and what it takes from others while it runs. */
export interface Act {
  title: string
  play: (scene: Scene) => Promise<void>
  /** Functions that lose something by it. */
  breaks?: readonly string[]
  /** It changes what there is once on a platform, or waits for what anybody's next change there would make up for. */
  isAlone?: true
  /** What proves the same afterwards, where it cannot be played twice. */
  again?: (scene: Scene) => Promise<void>
  /** Functions that it needs, where finding out takes too long. */
  touches?: readonly string[]
}

/** A grant of a function, and the act that needs it. */
export interface Need {
  name: string
  grant: string
  act: Act
}

/** How an act went without a grant. */
export interface Outcome extends Need {
  /** What it failed with; undefined where it passed all the same. */
  failure: string | undefined
  /** What the function was refused meanwhile that the grant would have allowed. */
  denials: readonly AccessDenial[]
}

/** What a refusal leads to has come by then, or does not. */
const afterwardsMs = 1000
/** Whatever asks for nothing until then does not need the grant. */
const patienceMs = 30_000
/** What is in a queue for longer comes again and again, because its consumer fails. */
const settlesWithinSeconds = 5

export function statementOf({ functions }: Simulator, name: string, grant: string): [string, Statement] {
  const { functionName = '', statements = [] } = functions.find((each) => each.name === name) ?? {}
  const found = statements.find((statement) => grantOf(statement) === grant)
  if (found === undefined) throw new Error(`${name} has no grant ${grant}.`)
  return [functionName, found]
}

/** Does work while a function is without a grant, and from a cold start: what it has read before counts for nothing. */
export async function without<Result>(
  { simulator }: Pick<Scene, 'simulator'>,
  [name, grant]: readonly [name: string, grant: string],
  work: () => Promise<Result>,
): Promise<Result> {
  const [functionName, statement] = statementOf(simulator, name, grant)
  const giveBack = simulator.cloud.gate.withhold(statement)
  try {
    await simulator.cloud.forget(functionName)
    return await work()
  } finally {
    giveBack()
  }
}

/** Plays an act without a grant. Once it is missed, what is waited for does not come. */
export async function playWithout(scene: Scene, need: Need): Promise<Outcome> {
  const { name, grant, act } = need
  const { gate } = scene.simulator.cloud
  const [, statement] = statementOf(scene.simulator, name, grant)
  const first = gate.denials.length
  const denials = () =>
    gate.denials.slice(first).filter((each) => each.functionName === name && allowing([statement], each))
  const hope = new AbortController()
  const over = new AbortController()
  const givingUp = giveUp(() => denials().length > 0, hope, over.signal)
  const failure = await without(scene, [name, grant], () => abortWaitsOn(hope.signal, () => played(scene, act)))
  over.abort()
  await givingUp
  return { ...need, failure, denials: denials() }
}

/** Whether an act was missed, and for want of the grant. */
export const isMissed = ({ failure, denials }: Outcome): boolean => failure !== undefined && denials.length > 0

const tries = 3

/**
 * Plays an act without a grant, three times at most, until it is missed: what others have left on its way may have made up for
 * what nobody was told, and a process that was busy when it was to be forgotten has kept what it has read. `heal` follows each try.
 */
export async function playAlone(scene: Scene, need: Need, heal?: () => Promise<unknown>): Promise<Outcome> {
  for (let left = tries; ; left--) {
    await settled(scene)
    const outcome = await playWithout(scene, need)
    await heal?.()
    if (isMissed(outcome) || left === 1) return outcome
  }
}

/** Nobody is at the books any more, who would enter what nobody was told. What nobody can handle lies where it is. */
async function settled({ simulator }: Scene): Promise<void> {
  const isAtRest = async () => {
    const response = await fetch(`${simulator.cloud.sqsUrl}/_queues`)
    const { queues }: any = await response.json()
    return queues.every(({ name, waiting, inFlight }: any) => !name.endsWith('-events') || waiting + inFlight === 0)
  }
  await waitFor('the queue of events is empty', isAtRest, settlesWithinSeconds).catch(() => undefined)
}

/** What an act failed with. */
export const played = (scene: Scene, { play }: Act): Promise<string | undefined> =>
  play(scene).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )

async function giveUp(isMissed: () => boolean, hope: AbortController, over: AbortSignal): Promise<void> {
  const untilMs = performance.now() + patienceMs
  while (!over.aborted && !isMissed() && performance.now() < untilMs) await delay(50)
  await delay(afterwardsMs, undefined, { signal: over }).catch(() => undefined)
  hope.abort()
}
