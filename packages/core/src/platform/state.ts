import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { get } from '../db/table.ts'

/** The state of the platform: setup, and the hash of the initial admin token. */
export const PlatformState = z.object({
  setupComplete: z.boolean().default(false),
  /** API starts so far. */
  starts: z.number().default(0),
  /** The layout of the table's items; absent in tables from before layouts were numbered. */
  layout: z.number().optional(),
  tokenHash: z.string().optional(),
  tokenMintedAtMs: z.number().default(0),
  tokenMintedAtStart: z.number().default(0),
  /** The portal's public URL. Setup stores it, the name and the time zone. */
  publicUrl: z.string().optional(),
  platformName: z.string().optional(),
  timezone: z.string().optional(),
})
export type PlatformState = z.infer<typeof PlatformState>

/** The current state; defaults before the first start. One call. */
export const readState = async (): Promise<PlatformState> => PlatformState.parse((await get(keys.platform())) ?? {})
