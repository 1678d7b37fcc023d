import * as z from 'zod'

/** A command of the project, as `npm run SCRIPT -- ARGS`; the script `sst` is the deployer itself. */
export const Command = z.object({
  script: z.string(),
  args: z.array(z.string()),
  environment: z.record(z.string(), z.string()),
  /** Files that stand in the project's folder meanwhile, by name. */
  files: z.record(z.string(), z.string()),
})
export type Command = z.infer<typeof Command>

export const Answer = z.object({
  exitCode: z.number(),
  /** What it said, errors last. */
  output: z.string(),
  /** What was asked of AWS. */
  requests: z.array(z.string()),
  /** What the engine was told to do, and how many resources it changed, by operation and type. */
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
