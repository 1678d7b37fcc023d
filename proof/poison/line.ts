import { type Consumer } from './tray.ts'

/** A message, and whether what it names is done, exactly once. */
export interface Errand {
  message: object
  /** What the store has to refuse for the message to fail. */
  id: string
  isDoneOnce: () => Promise<boolean>
}

/** A queue and its consumers, as poison is tried on them. */
export interface Line {
  name: string
  consumer: Consumer
  /** Takes what lies in the dead-letter queue, where somebody does. */
  undertaker?: Consumer
  /** New errands, which have nothing to do with each other. */
  errands: (count: number) => Promise<Errand[]>
  /** One that fails once it is dead-lettered, where that is what the undertaker does. */
  doomed?: () => Promise<Errand & { hasFailedOnce: () => Promise<boolean> }>
  /** A message that names what is deleted by now, and whether nothing came of it. */
  deleted: () => Promise<Errand>
}
