import * as z from 'zod'

/** Messages between the command and the background process. */

export const LaunchMessage = z.object({
  folder: z.string(),
  stage: z.string(),
  /** Port of the API; 0 picks one. */
  port: z.number(),
  /** Folder of built functions. */
  functions: z.string().optional(),
})
export type LaunchMessage = z.infer<typeof LaunchMessage>

export const IpcMessage = z.union([
  z.object({ step: z.string() }),
  z.object({ isReady: z.literal(true) }),
  z.object({ failure: z.string() }),
])
export type IpcMessage = z.infer<typeof IpcMessage>
