import { Link, type LinkProps } from '@tanstack/react-router'
import { variantOf } from '../../../ui/badge.tsx'
import { classes } from '../../../ui/class-names.ts'
import styles from './widgets.module.css'

interface NumbersProps {
  items: readonly { name: string; count: number; tone?: string; to: LinkProps }[]
}

/** Numbers with links to the counted resources. */
export const Numbers = ({ items }: NumbersProps) => (
  <ul className={styles['numbers']}>
    {items.map(({ name, count, tone = name, to }) => (
      <li key={name}>
        <Link {...to} className={styles['number']}>
          <strong className={classes(styles['count'], count > 0 && styles[variantOf(tone)])}>{count}</strong>
          <span>{name}</span>
        </Link>
      </li>
    ))}
  </ul>
)
