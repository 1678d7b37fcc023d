import { countVersionError } from '@platform/core/updates/error-count'
import { log, withTrace } from '@platform/core/log'
import { withMetrics } from '@platform/core/lib/metrics'
import { newTraceId } from '@platform/core/lib/trace'
import type * as z from 'zod'
import { withVersionProbe } from './version-probe.ts'

/** Creates a Lambda function that handles one event of an AWS service. An error is logged and fails the invocation. */
export const onEvent = <Schema extends z.ZodType>(schema: Schema, work: (event: z.output<Schema>) => Promise<void>) =>
  withVersionProbe((event: unknown): Promise<void> =>
    withTrace({ traceId: newTraceId() }, () =>
      withMetrics(async () => {
        try {
          await work(schema.parse(event))
        } catch (error) {
          log('error', 'event failed', { cause: error })
          await countVersionError()
          throw error
        }
      }),
    ),
  )
