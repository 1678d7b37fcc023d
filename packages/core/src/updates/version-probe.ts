import * as z from 'zod'

/** What asks a function of the platform for nothing but its version: an update looks so whether a release begins at all. */
export const probeEvent = { platformProbe: true } as const
export type ProbeEvent = typeof probeEvent

/** What every function answers to it. */
export const ProbeAnswer = z.object({ version: z.string() })
export type ProbeAnswer = z.infer<typeof ProbeAnswer>

/** Of what a gateway or a queue makes for a function. */
const madeForOthers = ['requestContext', 'Records']

/**
 * Whether an event is a probe. Only who may invoke functions can send one: what callers and messages say stands below the
 * members that gateway and queue give every event, and never beside them.
 */
export const isProbe = (event: unknown): event is ProbeEvent =>
  typeof event === 'object' &&
  event !== null &&
  'platformProbe' in event &&
  event.platformProbe === true &&
  !madeForOthers.some((name) => name in event)
