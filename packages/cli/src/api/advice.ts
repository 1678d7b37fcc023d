import { environmentToken, loginCommand } from '../context.ts'

/** Advice after an error. `message`, if set, replaces the message of the platform. */
export interface Advice {
  message?: string
  next?: string
}

export function adviceFor(code: string, { headers }: Response): Advice {
  if (code === 'rate_limited') {
    const seconds = Number(headers.get('retry-after')) || 0
    return { message: 'Too many requests.', next: `Wait ${seconds > 0 ? `${seconds} s` : 'a minute'} and try again.` }
  }
  if (code === 'unauthenticated' || code === 'token_expired') return adviceToSignIn(code)
  return (Object.hasOwn(advice, code) ? advice[code] : undefined) ?? {}
}

function adviceToSignIn(code: string): Advice {
  const login = loginCommand()
  if (environmentToken() === undefined) return { message: 'Your session has ended.', next: `Run: ${login}` }
  const problem = code === 'token_expired' ? 'has expired' : 'is not valid'
  return { message: `The token in PLAT_TOKEN ${problem}.`, next: `Set another one, or unset it and run: ${login}` }
}

const see = (...commands: string[]): Advice => ({ next: `See: ${commands.map((each) => `plat ${each}`).join(', ')}` })

const unknownCommand: Advice = {
  message: 'The platform does not know this command.',
  next: 'Its version may differ from that of plat. See: plat --version',
}

const advice: Record<string, Advice> = {
  invalid_credentials: { next: 'Try again. An administrator can set a new password.' },
  setup_already_complete: { message: 'Setup is complete.', next: 'Run: plat login' },
  forbidden: { next: 'Ask an administrator for a role with this permission. See yours: plat whoami' },
  cluster_forbidden: see('cluster list'),
  route_not_found: unknownCommand,
  method_not_allowed: unknownCommand,
  cluster_not_found: see('cluster list'),
  node_not_in_cluster: see('node list'),
  job_not_found: see('job list'),
  batch_not_found: see('batch list'),
  site_not_found: see('site list'),
  user_not_found: see('user list'),
  organisation_not_found: see('organisation list'),
  token_not_found: see('token list'),
  webhook_not_found: see('webhook list'),
  delivery_not_found: see('webhook deliveries ID'),
  enrollment_key_not_found: see('enrollment-key list'),
  identity_provider_not_found: see('idp list'),
  module_not_found: { message: 'There is no such module.', ...see('module list', 'module catalog') },
  module_not_installed: see('module list'),
  version_not_available: { message: 'There is no such release.', ...see('module catalog', 'update check') },
  cluster_has_active_jobs: see('job list --cluster NAME'),
  active_jobs: { message: 'Jobs are running. Wait for them to end, or use --force.', ...see('job list') },
  limit_reached: see('organisation usage'),
  target_changed: {
    message: 'The clusters of the target have changed.',
    next: 'Check them and run the command again.',
  },
  precondition_failed: { message: 'The resource has changed.', next: 'Run the command again.' },
  conflict: { message: 'Another request changed the same resource.', next: 'Run the command again.' },
  idempotency_key_reused: {
    message: 'The same request was sent before with different content.',
    next: 'Run the command again.',
  },
  internal_error: {
    message: 'The platform failed unexpectedly.',
    next: 'Try again. If it fails again, report the trace id to the operator of the platform.',
  },
}
