import type { AttemptError } from '@platform/contract/webhook'
import { now, nowSeconds } from '../clock.ts'
import type { Attempt, DeliveryRecord } from './delivery-record.ts'
import { log } from '../log.ts'
import { config } from '../config.ts'
import { recordMetric } from '../lib/metrics.ts'
import { parseAllowlist } from '../lib/settings/allowlist.ts'
import { outboundFetch, OutboundError } from '../outbound/outbound.ts'
import type { WebhookRecord } from './record.ts'
import { signedHeaders } from './secret.ts'

export const webhookAllowlist: ReadonlySet<string> = parseAllowlist(config.PLAT_WEBHOOK_ALLOW)

const timeoutMs = 10_000
/** The response is read up to this limit and discarded. */
const maxResponseBytes = 16_384

/** Sends a delivery, which succeeds with a 2xx status within ten seconds. */
export async function attemptDelivery(webhook: WebhookRecord, { eventId, body }: DeliveryRecord): Promise<Attempt> {
  const signatureHeaders = await signedHeaders(webhook, eventId, nowSeconds(), body)
  const headers = { 'content-type': 'application/json', ...signatureHeaders }
  const [atMs, startedMs] = [now(), performance.now()]
  const outcome = await post(webhook, { headers, body })
  if (outcome.error !== undefined) recordMetric('DeliveryFailures')
  return { atMs, durationMs: Math.round(performance.now() - startedMs), ...outcome }
}

async function post(
  { id: webhookId, url }: WebhookRecord,
  message: { headers: Record<string, string>; body: string },
): Promise<Pick<Attempt, 'statusCode' | 'error'>> {
  try {
    const request = { method: 'POST', ...message, timeoutMs, maxBytes: maxResponseBytes }
    const { status } = await outboundFetch(url, request, { allow: webhookAllowlist })
    const error = errorOf(status)
    return { statusCode: status, ...(error && { error }) }
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    log('info', 'Webhook delivery failed', { webhookId, problem: error.problem, error: String(error.cause) })
    return { error: error.problem }
  }
}

function errorOf(status: number): AttemptError | undefined {
  if (status >= 200 && status < 300) return undefined
  return status >= 300 && status < 400 ? 'redirected' : 'unsuccessful_status'
}
