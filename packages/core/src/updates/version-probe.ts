import * as z from 'zod'

/** Asks a function only for its version: updates check this way that a release starts. */
export const probeEvent = { platformProbe: true } as const
export type ProbeEvent = typeof probeEvent

/** The response of every function. */
export const ProbeAnswer = z.object({ version: z.string() })
export type ProbeAnswer = z.infer<typeof ProbeAnswer>

/** Members of gateway and queue events. */
const madeForOthers = ['requestContext', 'Records']

/**
 * Whether an event is a probe. Only those who may invoke functions can send one: input of callers and messages is
 * always nested in members of gateway and queue events.
 */
export const isProbe = (event: unknown): event is ProbeEvent =>
  typeof event === 'object' &&
  event !== null &&
  'platformProbe' in event &&
  event.platformProbe === true &&
  !madeForOthers.some((name) => name in event)
