import * as z from 'zod'

/** What the command tells the process of the rehearsal, and what it hears of it. */

export const LaunchMessage = z.object({
  folder: z.string(),
  stage: z.string(),
  /** Of the API; 0 picks one. */
  port: z.number(),
  /** Folder of functions that are built already. */
  functions: z.string().optional(),
})
export type LaunchMessage = z.infer<typeof LaunchMessage>

export const IpcMessage = z.union([
  z.object({ step: z.string() }),
  z.object({ isReady: z.literal(true) }),
  z.object({ failure: z.string() }),
])
export type IpcMessage = z.infer<typeof IpcMessage>
