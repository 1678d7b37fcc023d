import type { ReactNode } from 'react'
import { classes } from '../ui/class-names.ts'
import { useTitle } from '../ui/page.tsx'
import styles from './standalone.module.css'

interface StandaloneProps {
  /** The only h1 of the page, also used as the document title. */
  title: string
  brand: string
  isWide?: boolean
  children: ReactNode
}

/** A page without the shell, for users who are not signed in. */
export function Standalone({ title, brand, isWide = false, children }: StandaloneProps) {
  useTitle(title)
  return (
    <main className={styles['frame']}>
      <p className={styles['brand']}>
        <img src="/icon.svg" alt="" width={28} height={28} />
        <span>{brand}</span>
      </p>
      <div className={classes(styles['card'], isWide && styles['wide'])}>
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  )
}
