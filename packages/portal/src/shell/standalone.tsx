import { useSuspenseQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { configurationQuery } from '../api/account.ts'
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
        <DemoBanner />
        {children}
      </div>
    </main>
  )
}

export function DemoBanner() {
  const { isDemo = false } = useSuspenseQuery(configurationQuery).data
  if (!isDemo) return null
  return (
    <p role="note" className={styles['demo']}>
      This is a demo. Its data and its relays are on this machine; <code>npm run demo:clean</code> removes them.
    </p>
  )
}
