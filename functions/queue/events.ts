import { bookAll } from '@platform/core/background/projections'
import { consume } from '@platform/http/consume'
import { RecordsMessage } from '@platform/http/messages'

export const handler = consume(RecordsMessage, ({ organisationId }) => bookAll(organisationId))
