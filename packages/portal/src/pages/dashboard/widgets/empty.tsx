import { Link, type LinkProps } from '@tanstack/react-router'
import { useHasPermission } from '../../../api/account.ts'
import styles from './widgets.module.css'

export const EmptyWidget = ({ text, to, label }: { text: string; to: LinkProps; label: string }) => (
  <p className={styles['nothing']}>
    {text} <Link {...to}>{label}</Link>
  </p>
)

/** States that there are no clusters, with a link to the registration if the user may register one. */
export const NoClusters = () =>
  useHasPermission('clusters:write') ? (
    <EmptyWidget text="No clusters yet." to={{ to: '/clusters/register' }} label="Register a cluster" />
  ) : (
    <p className={styles['nothing']}>No clusters yet.</p>
  )
