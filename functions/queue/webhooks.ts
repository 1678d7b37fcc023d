import { drainDeliveries } from '@platform/core/webhooks/delivery'
import { consume } from '@platform/http/consume'
import { WebhookMessage } from '@platform/http/messages'

export const handler = consume(WebhookMessage, drainDeliveries)
