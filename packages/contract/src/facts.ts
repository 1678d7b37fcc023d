import * as z from 'zod'
import { line } from './common.ts'

/** Maximum number of facts that the programs in `--facts-dir` of a relay add. */
const maxCustomFacts = 32

const bytes = z.int().min(0).optional()

/** Facts about a node. The relay collects them with shell commands; a fact whose command fails is absent. */
export const NodeFacts = z
  .object({
    os: line(1, 100).optional().meta({ example: 'linux' }),
    osVersion: line(1, 100).optional().meta({ example: 'Debian GNU/Linux 13 (trixie)' }),
    kernel: line(1, 100).optional().meta({ example: '6.12.0' }),
    arch: line(1, 100).optional().meta({ example: 'x86_64' }),
    cpus: z.int32().min(1).optional().meta({ example: 4 }),
    memoryBytes: bytes.meta({ description: 'Rounded to 64 MiB', example: 8_589_934_592 }),
    rootDiskBytes: bytes.meta({ description: 'Size of the file system at /', example: 53_687_091_200 }),
    rootDiskFreeBytes: bytes.meta({
      description: 'Free space there, in steps of a twentieth of its size',
      example: 26_843_545_600,
    }),
    shells: z
      .array(z.string().max(20))
      .max(20)
      .optional()
      .meta({ example: ['sh', 'bash'] }),
  })
  .meta({ id: 'NodeFacts' })

/** Facts that a relay reports with a heartbeat. */
export const FactsReport = z
  .object({
    relayVersion: line(1, 64),
    custom: z
      .record(
        z
          .string()
          .max(57)
          .regex(/^[a-z0-9](?:[a-z0-9._/-]{0,55}[a-z0-9])?$/),
        z.string().max(200),
      )
      .refine((facts) => Object.keys(facts).length <= maxCustomFacts, `must have at most ${maxCustomFacts} facts`)
      .meta({
        description: 'Facts of the programs in `--facts-dir`, which become labels `facts/<key>` of the cluster',
      }),
    nodes: z.array(NodeFacts.extend({ id: z.string().max(40) })).max(2000),
  })
  .meta({ id: 'FactsReport' })

export type NodeFacts = z.infer<typeof NodeFacts>
export type FactsReport = z.infer<typeof FactsReport>
