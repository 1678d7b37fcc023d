import * as z from 'zod'

/** This event requests only the version of a function. An update uses it to check that a release starts. */
export const probeEvent = { platformProbe: true } as const
export type ProbeEvent = typeof probeEvent

export const ProbeResponse = z.object({ version: z.string() })
export type ProbeResponse = z.infer<typeof ProbeResponse>

const gatewayAndQueueMembers = ['requestContext', 'Records']

/**
 * Only principals that may invoke the function can send a probe, because gateway and queue events nest all input of
 * callers in other members.
 */
export const isProbe = (event: unknown): event is ProbeEvent =>
  typeof event === 'object' &&
  event !== null &&
  'platformProbe' in event &&
  event.platformProbe === true &&
  !gatewayAndQueueMembers.some((name) => name in event)
