import { runOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { JobMessage } from '@platform/http/messages'

// Loaded on demand, for a fast cold start.
const loadHandlers = async () => (await import('@platform/worker/updates/handlers')).updateHandlers()

/** Runs for up to 300 seconds, because it waits for the bake time of a release. */
export const handler = consume(JobMessage, (message) => runOperation(message, loadHandlers))
