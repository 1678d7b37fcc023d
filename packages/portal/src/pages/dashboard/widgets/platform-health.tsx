import { Link } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { StatusBadge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import styles from './widgets.module.css'

const meanings = {
  Healthy: 'All checks that count are good.',
  Degraded: 'The platform serves, but something is not as it should be.',
  Unhealthy: 'Something that the platform needs does not work.',
}

/** How the platform itself is. */
export const PlatformHealth = () => (
  <Loaded query={useSummary()} what="the health">
    {({ health: { aggregate } }) => (
      <div className={styles['stack']}>
        <StatusBadge status={aggregate} title={meanings[aggregate]} />
        <Link to="/health">See all checks</Link>
      </div>
    )}
  </Loaded>
)
