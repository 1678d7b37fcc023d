import { Link, type LinkProps } from '@tanstack/react-router'
import styles from './widgets.module.css'

/** In a widget that has nothing to show: why, and where to go. */
export const EmptyWidget = ({ text, to, label }: { text: string; to: LinkProps; label: string }) => (
  <p className={styles['nothing']}>
    {text} <Link {...to}>{label}</Link>
  </p>
)
