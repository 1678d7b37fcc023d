import { Link } from '@tanstack/react-router'
import { useSummary } from '../../../api/account.ts'
import { StatusBadge } from '../../../ui/badge.tsx'
import { Loaded } from '../../../ui/state.tsx'
import styles from './widgets.module.css'

const meanings = {
  Healthy: 'All checks pass.',
  Degraded: 'The platform works with limitations.',
  Unhealthy: 'A critical check fails.',
}

export const PlatformHealth = () => (
  <Loaded query={useSummary()} what="the health">
    {({ health: { aggregate } }) => (
      <div className={styles['stack']}>
        <StatusBadge status={aggregate} title={meanings[aggregate]} />
        <Link to="/health">All checks</Link>
      </div>
    )}
  </Loaded>
)
