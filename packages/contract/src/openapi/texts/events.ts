import type { Texts } from './text.ts'

/** Texts of the data of events, by event name. */
export const eventTexts: Texts = {
  CloudEvent: {
    '': 'An event in the CloudEvents 1.0 JSON format. Ignore unknown members: a later release may add some',
    specversion: 'Version of CloudEvents',
    type: 'Type of the event',
    time: 'Time at which the event occurred',
    datacontenttype: 'Media type of `data`',
    data: 'Data of the event; its members depend on the type',
  },
  'setup.completed': { platformName: ['Name of the platform', 'Acme Platform'] },
  'user.created user.signed_in user.sign_in_failed user.password_reset user.suspended user.deleted organisation.recovered':
    {
      username: ['Name of the user', 'ada'],
      displayName: ['Name at the identity provider', 'Ada Lovelace'],
    },
  'user.suspended': { reason: ['Response of the identity provider', 'The account is disabled.'] },
  'token.created': { name: ['Name of the API token', 'nightly backup'] },
  'cluster.registered cluster.enrolled cluster.status_changed cluster.updated cluster.deleted relay.replaced relay.duplicate_detected':
    { name: ['Name of the cluster', 'berlin-1'] },
  'cluster.registered': { type: 'Type of the cluster' },
  'cluster.enrolled': { nodeCount: ['Number of nodes', 1] },
  'cluster.status_changed': { status: ['New status', 'Offline'], previousStatus: ['Previous status', 'Healthy'] },
  'cluster.updated': { siteId: 'Site of the cluster; null if it has none' },
  'job.queued job.started job.completed job.failed job.cancelled': {
    type: 'Job type',
  },
  'relay.update_completed relay.update_stopped': { version: 'Version of the relay program' },
  'relay.update_stopped': { reason: ['Why the platform stopped the update', 'Two of three canaries rolled back.'] },
  'job.completed job.failed job.cancelled': {
    previousStatus: ['Status before the end', 'Running'],
    statusReason: 'Why the job ended without success',
    exitCode: ['First exit code of the nodes that is not 0, else 0; null or absent if no script exited', 0],
  },
  'batch.accepted': { submittedCount: ['Number of jobs', 500] },
  'batch.finished': {
    counts: 'Number of jobs by status',
    'counts.queued': 'Always 0',
    'counts.running': 'Always 0',
    'counts.completed': 'Jobs that completed',
    'counts.failed': 'Jobs that failed',
    'counts.cancelled': 'Jobs that were cancelled',
  },
  'module.installing module.installed module.failed module.uninstalled module.health_changed module.heartbeat_missed': {
    version: 'Version of the module',
  },
  'module.failed': {
    code: 'Kind of failure',
    message: ['Cause of the failure', 'The module did not become healthy.'],
  },
  'module.health_changed': { health: ['New health', 'Degraded'], previousHealth: ['Previous health', 'Healthy'] },
  'identity.provider_configured identity.provider_failed identity.consent_received': { type: 'Kind of provider' },
  'identity.provider_configured identity.provider_failed': {
    displayName: ['Name shown on the sign-in page', 'Acme directory'],
  },
  'identity.provider_failed': {
    problem: 'Kind of failure',
    detail: ['Cause of the failure', 'The address did not respond in time.'],
  },
  'identity.consent_received': { consent: ['Decision of the administrator', 'granted'] },
  'update.available': {
    version: 'Version of the release',
    releaseNotesUrl: ['Address of the release notes', 'https://example.com/releases/1.4.0'],
  },
  'update.started update.completed update.failed update.rolled_back': {
    version: 'Version that the operation leads to',
    previousVersion: 'Version that served before it',
  },
  'update.failed': { message: [undefined, 'The smoke test failed: the function jobs did not respond.'] },
  'update.started update.failed': { action: 'Operation: an update or a rollback' },
  'webhook.disabled': {
    url: ['Address of the webhook', 'https://hooks.example.com/platform'],
    createdBy: ['The user who created the webhook', 'user_01jd8w5k3zr9x2m4c7t6v0b1qa'],
  },
}
