import { bookAll } from '@platform/core/all-books'
import { consume } from '@platform/http/consume'
import { RecordsMessage } from '@platform/http/message'

export const handler = consume(RecordsMessage, ({ organisationId }) => bookAll(organisationId))
