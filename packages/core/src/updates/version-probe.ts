import * as z from 'zod'

/** Requests only the version of a function. Updates use it to check that a release starts. */
export const probeEvent = { platformProbe: true } as const
export type ProbeEvent = typeof probeEvent

export const ProbeResponse = z.object({ version: z.string() })
export type ProbeResponse = z.infer<typeof ProbeResponse>

const gatewayAndQueueMembers = ['requestContext', 'Records']

/**
 * Whether an event is a probe. Sending one requires the right to invoke the function, because input of callers and
 * messages is always nested in members of gateway and queue events.
 */
export const isProbe = (event: unknown): event is ProbeEvent =>
  typeof event === 'object' &&
  event !== null &&
  'platformProbe' in event &&
  event.platformProbe === true &&
  !gatewayAndQueueMembers.some((name) => name in event)
