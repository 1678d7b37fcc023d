import { Link, type LinkProps } from '@tanstack/react-router'
import styles from './widgets.module.css'

/** Explains why a widget is empty and links to a page. */
export const EmptyWidget = ({ text, to, label }: { text: string; to: LinkProps; label: string }) => (
  <p className={styles['nothing']}>
    {text} <Link {...to}>{label}</Link>
  </p>
)
