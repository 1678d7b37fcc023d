import * as z from 'zod'

/** A command of the project, as `npm run SCRIPT -- ARGS`; the script `sst` is SST itself. */
export const Command = z.object({
  script: z.string(),
  args: z.array(z.string()),
  environment: z.record(z.string(), z.string()),
  /** Additional files in the project folder, by name. */
  files: z.record(z.string(), z.string()),
})
export type Command = z.infer<typeof Command>

export const Answer = z.object({
  exitCode: z.number(),
  output: z.string(),
  requests: z.array(z.string()),
  /** Operations of the engine and how many resources each changed, by type. */
  runs: z.array(
    z.object({
      command: z.string(),
      stage: z.string(),
      isFine: z.boolean(),
      changes: z.record(z.string(), z.number()),
    }),
  ),
})
export type Answer = z.infer<typeof Answer>
