import { all, type Effort, type Figure } from '../part.ts'
import { type Line } from './line.ts'
import { refuseCallsNaming } from './refusing-store.ts'
import { workOff } from './tray.ts'

const receives = 5

/** What may be wrong with a message. */
export const kinds = ['malformed JSON', 'an unknown type', 'names what is gone', 'the store refuses'] as const
export type Kind = (typeof kinds)[number]

/** A poisoned message, and what has to become of it. */
interface Poison {
  body: string
  /** What is refused meanwhile. */
  refuses?: string
  isBuried: boolean
  /** After it was buried and whoever takes it from there has done so. */
  isWell: () => Promise<boolean>
}

/** Nobody knows what it was for: it is left to people. */
const nothingFollows = async (): Promise<boolean> => true

async function poisonOf(line: Line, kind: Kind): Promise<Poison> {
  if (kind === 'malformed JSON') return { body: '{"organisationId": "org_', isBuried: true, isWell: nothingFollows }
  if (kind === 'an unknown type') return { body: '{"type": "nobody.knows"}', isBuried: true, isWell: nothingFollows }
  if (kind === 'names what is gone') {
    const { message, isDoneOnce } = await line.deleted()
    return { body: JSON.stringify(message), isBuried: false, isWell: isDoneOnce }
  }
  const doomed = await line.doomed?.()
  const [errand] = doomed ? [doomed] : await line.errands(1)
  if (errand === undefined) throw new Error('There is no errand.')
  // Where nobody takes dead letters, the sweep announces what they named, and it is done.
  const later = async () => {
    await line.consumer(eventOf(JSON.stringify(errand.message)))
    return errand.isDoneOnce()
  }
  const body = JSON.stringify(errand.message)
  return { body, refuses: errand.id, isBuried: true, isWell: doomed?.hasFailedOnce ?? later }
}

const eventOf = (body: string): any => ({ Records: [{ messageId: 'message', body }] })

interface Seen {
  cases: number
  othersDone: number
  buried: number
  toBury: number
  well: number
}

/** Ten messages, one of them poisoned. */
async function tryOne(line: Line, kind: Kind, position: number, seen: Seen): Promise<void> {
  const errands = await line.errands(9)
  const poison = await poisonOf(line, kind)
  const bodies = errands.map(({ message }) => JSON.stringify(message)).toSpliced(position, 0, poison.body)
  const refusing = poison.refuses === undefined ? undefined : refuseCallsNaming(poison.refuses)
  const { events, buried } = await workOff(bodies, line.consumer)
  refusing?.[Symbol.dispose]()
  const areDone = await Promise.all(errands.map(({ isDoneOnce }) => isDoneOnce()))
  // All ten came at once, the poison at its place; then the poison alone.
  const isAsPlanned = events[0]?.length === 10 && events[0][position] === poison.body
  const others = events.slice(1).flat()
  seen.cases++
  seen.othersDone += isAsPlanned && areDone.every(Boolean) && others.every((body) => body === poison.body) ? 1 : 0
  if (poison.isBuried) {
    seen.toBury++
    seen.buried += String(buried) === poison.body && events.length === receives ? 1 : 0
    for (const body of buried) await line.undertaker?.(eventOf(body))
  }
  seen.well += (poison.isBuried || buried.length === 0) && (await poison.isWell()) ? 1 : 0
}

/** Which poison is tried on a queue, and where among ten messages. */
export interface Trial {
  kinds: readonly Kind[]
  positions: readonly number[]
}

/** Tries each kind of poison at each place. */
export async function tryAll(line: Line, trial: Trial, { say }: Effort): Promise<Figure[]> {
  const seen = { cases: 0, othersDone: 0, buried: 0, toBury: 0, well: 0 }
  for (const kind of trial.kinds) {
    for (const position of trial.positions) await tryOne(line, kind, position, seen)
    say(`${line.name}: ${kind}`)
  }
  const { cases, othersDone, buried, toBury, well } = seen
  const end =
    line.doomed === undefined
      ? 'what it named is done once, as soon as it is announced again'
      : 'its job has Failed, once, and that is told once'
  return [
    all(
      `${line.name}: events of ten with a poisoned message, the other nine done once, at their first receive`,
      othersDone,
      cases,
    ),
    all(`${line.name}: poison that lies alone in the dead-letter queue after ${receives} receives`, buried, toBury),
    all(`${line.name}: of what is gone nothing comes; where the store refused ${end}`, well, cases),
  ]
}
