import * as z from 'zod'
import * as keys from '../db/keys.ts'
import { get } from '../db/table.ts'

export const PlatformState = z.object({
  setupComplete: z.boolean().default(false),
  starts: z.number().default(0),
  /** The layout of the table's items. Absent in tables that were written before layouts were numbered. */
  layout: z.number().optional(),
  tokenHash: z.string().optional(),
  tokenMintedAtMs: z.number().default(0),
  tokenMintedAtStart: z.number().default(0),
  publicUrl: z.string().optional(),
  platformName: z.string().optional(),
  timezone: z.string().optional(),
})
export type PlatformState = z.infer<typeof PlatformState>

export const readState = async (): Promise<PlatformState> => PlatformState.parse((await get(keys.platform())) ?? {})
