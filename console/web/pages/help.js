// Help: the keys, the states, and where to read more.

import { h } from '../render.js';
import { t } from '../words.js';
import { NAVIGATION } from '../parts/frame.js';
import { facts, heading, section, standing } from '../parts/pieces.js';

export default function help() {
  /** @param {...string} keys */
  const keys = (...keys) => keys.map((key, index) => [index ? ' ' : '', h('kbd', null, key)]);
  return {
    title: () => t('nav.help'),
    view: () => [
      heading(t('nav.help'), { about: t('help.about') }),
      section(t('help.keys'), facts([
        [keys('/'), t('help.search')], [keys('j', 'k'), t('help.rows')], [keys('Enter'), t('help.open')], [keys('x', 'Space'), t('help.select')], [keys('e'), t('help.extend')], [keys('c', 'm', 'r'), t('help.act')], [keys('.'), t('help.first')], [keys('n'), t('new')], [keys('u'), t('help.undo')], [keys('+', '-', '←', '→'), t('help.zoom')], [keys('r'), t('help.refresh')],
        [keys('p'), t('help.live')], [keys('t'), `${t('theme')} · ${t('help.table')}`], [keys('?'), t('nav.help')], [keys('Esc'), t('help.leave')],
        ...NAVIGATION.map(([page, key]) => /** @type {[any, any]} */ ([keys('g', key), t('nav.' + page)])),
      ])),
      section(t('help.states'), facts(['scheduled', 'ready', 'leased', 'spread', 'dead'].map((state) => [standing({ state }), t(`help.${state}`)]))),
      section(t('help.api'), [h('p', null, t('help.api.text')), h('p', null, h('a', { href: '/v1/openapi.json' }, h('code', null, '/v1/openapi.json')))]),
    ],
  };
}
