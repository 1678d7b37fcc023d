import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { get } from '../db/table.ts'

/** The platform's own state: is it set up, and which initial admin token opens setup (D10). */
export const PlatformState = z.object({
  setupComplete: z.boolean().default(false),
  /** API starts so far. */
  starts: z.number().default(0),
  tokenHash: z.string().optional(),
  tokenMintedAtMs: z.number().default(0),
  tokenMintedAtStart: z.number().default(0),
  /** Where people reach the portal; from setup on, like the name and the time zone. */
  publicUrl: z.string().optional(),
  platformName: z.string().optional(),
  timezone: z.string().optional(),
})
export type PlatformState = z.infer<typeof PlatformState>

/** The state as it stands; all defaults before the first start. One call. */
export const readState = async (): Promise<PlatformState> => PlatformState.parse((await get(keys.platform())) ?? {})
