import * as z from 'zod'
import { type Rotation } from './keys.ts'

const Order = z.strictObject({ rotate: z.literal('access'), withdraw: z.boolean().default(false) })

/**
 * The rotation of keys that an event asks for: `{"rotate": "access"}`, with `"withdraw": true` where a key has leaked.
 * Undefined where it asks for none; throws where it asks for one that there is not. No call.
 */
export function rotationIn(event: unknown): Rotation | undefined {
  if (typeof event !== 'object' || event === null || !('rotate' in event)) return undefined
  return { rotate: true, withdraw: Order.parse(event).withdraw }
}
