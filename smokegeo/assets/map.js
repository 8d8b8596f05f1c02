"use strict";
// The page's own part: draws what the two JSON blocks hold and wires the panel to the map.
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const settings = read("settings");
  const polygons = read("polygons");
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const byId = new Map();

  // A photograph has no place on Earth: its map is its own pixels, with rows counted downwards.
  const inPixels = settings.inPixels;

  const map = L.map("map", {
    crs: inPixels ? L.CRS.Simple : L.CRS.EPSG3857,
    minZoom: inPixels ? -12 : 0,
    attributionControl: false,
    zoomControl: false,
    zoomSnap: 0.25,
    wheelPxPerZoomLevel: 120,
    maxZoom: inPixels ? 6 : 25,
    preferCanvas: polygons.features.length > 1000,
    zoomAnimation: !still,
    fadeAnimation: !still,
    markerZoomAnimation: !still,
  });
  L.control.zoom({ position: "topright" }).addTo(map);

  // Below the polygons, whatever is switched on last.
  map.createPane("picture").style.zIndex = 250;
  const picture = settings.picture &&
    L.imageOverlay(settings.picture.url, settings.picture.bounds, {
      pane: "picture",
      alt: "Picture of the scene",
    }).addTo(map);

  const style = (feature) => ({
    color: settings.colours[feature.properties.class],
    weight: 2,
    opacity: 1,
    fillColor: settings.colours[feature.properties.class],
    fillOpacity: 0.35,
  });
  // A dark line under each outline parts light colours from bright ground.
  const casing = L.geoJSON(polygons, {
    interactive: false,
    style: { color: "#1e0a0a", weight: 4, opacity: 0.55, fill: false },
  });
  const smoke = L.geoJSON(polygons, {
    style,
    onEachFeature: (feature, layer) => {
      byId.set(feature.properties.id, layer);
      layer.bindPopup(() => card(feature.properties), { maxWidth: 240 });
      layer.on("popupopen", () => choose(feature.properties.id));
      layer.on("popupclose", () => choose(null));
      layer.on("mouseover", () => layer.setStyle({ weight: 3, fillOpacity: 0.5 }));
      layer.on("mouseout", () => smoke.resetStyle(layer));
    },
  });
  const drawn = L.layerGroup([casing, smoke]).addTo(map);

  function element(tag, text, className) {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }

  const percent = (value) => (value === null ? "unknown" : Math.round(100 * value) + " %");

  function rows(outline) {
    return [
      ["Area", outline.area],
      ["Mean probability", percent(outline.mean_prob)],
      ["Highest probability", percent(outline.max_prob)],
    ];
  }

  function warnings(outline) {
    const texts = [];
    if (outline.touches_edge) texts.push("Cut by the edge of the scene: it may go on outside.");
    if (outline.touches_nodata) texts.push("Borders on pixels without data: part of it may be missing.");
    return texts;
  }

  function card(outline) {
    const box = element("div");
    const heading = element("h3");
    heading.append(element("span", undefined, "swatch class-" + outline.class), "Outline " + outline.id);
    const list = element("dl");
    for (const [name, value] of rows(outline)) {
      const row = element("div");
      row.append(element("dt", name), element("dd", value));
      list.append(row);
    }
    box.append(heading, list, ...warnings(outline).map((text) => element("p", text)));
    return box;
  }

  function choose(id) {
    for (const button of document.querySelectorAll("[data-outline]")) {
      if (Number(button.dataset.outline) === id) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    if (id === null) return;
    const outline = byId.get(id).feature.properties;
    const said = rows(outline).map(([name, value]) => name + " " + value).concat(warnings(outline));
    document.getElementById("status").textContent = "Outline " + id + ". " + said.join(". ");
  }

  // The whole view: the scene, or the outlines alone where there is no picture.
  const bounds = L.latLngBounds([]);
  if (picture) bounds.extend(picture.getBounds());
  if (polygons.features.length) bounds.extend(smoke.getBounds());
  let atHome = true; // until the user moves the map; so long, it is fitted anew when resized
  function home(options) {
    atHome = true;
    if (bounds.isValid()) map.fitBounds(bounds, Object.assign({ padding: [16, 16] }, options));
    else map.setView([20, 0], 1);
  }
  home({ animate: false });
  map.setMinZoom(Math.max(map.getMinZoom(), Math.floor(map.getZoom()) - 3));
  for (const name of ["pointerdown", "wheel", "keydown"]) {
    map.getContainer().addEventListener(name, () => { atHome = false; }, true);
  }

  const Home = L.Control.extend({
    options: { position: "topright" },
    onAdd: () => {
      const bar = L.DomUtil.create("div", "leaflet-bar");
      const link = L.DomUtil.create("a", "", bar);
      link.href = "#map";
      link.title = "Show the whole scene";
      link.setAttribute("role", "button");
      link.setAttribute("aria-label", link.title);
      link.innerHTML =
        '<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="2" aria-hidden="true">' +
        '<path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4"/></svg>';
      L.DomEvent.disableClickPropagation(bar);
      L.DomEvent.on(link, "click", (event) => { L.DomEvent.preventDefault(event); home(); });
      L.DomEvent.on(link, "keydown", (event) => {
        if (event.key === " ") { L.DomEvent.preventDefault(event); home(); }
      });
      return bar;
    },
  });
  new Home().addTo(map);
  if (!inPixels) L.control.scale({ imperial: false, maxWidth: 140 }).addTo(map);

  const Position = L.Control.extend({
    options: { position: "bottomright" },
    onAdd: () => L.DomUtil.create("div", "position"),
  });
  const pixel = (at) => "column " + Math.floor(at.lng) + ", row " + Math.floor(-at.lat);
  const degrees = (value, plus, minus) =>
    Math.abs(value).toFixed(5) + "° " + (value < 0 ? minus : plus);
  const place = (at) => degrees(at.lat, "N", "S") + ", " + degrees(at.lng, "E", "W");
  const position = new Position().addTo(map).getContainer();
  position.hidden = true;
  map.on("mousemove", (event) => {
    position.hidden = false;
    position.textContent = inPixels ? pixel(event.latlng) : place(event.latlng.wrap());
  });
  map.on("mouseout", () => { position.hidden = true; });

  function toggle(id, layer) {
    document.getElementById(id).addEventListener("change", (event) => {
      if (event.target.checked) map.addLayer(layer);
      else map.removeLayer(layer);
    });
  }
  toggle("show-smoke", drawn);
  if (picture) {
    document.getElementById("picture-controls").hidden = false;
    toggle("show-picture", picture);
    document.getElementById("opacity").addEventListener("input", (event) => {
      picture.setOpacity(event.target.value / 100);
      document.getElementById("opacity-value").textContent = event.target.value + " %";
    });
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-outline]");
    if (!button) return;
    const layer = byId.get(Number(button.dataset.outline));
    const box = document.getElementById("show-smoke");
    if (!box.checked) box.click();
    atHome = false;
    // Room above for the popup, which points at the outline's top and leaves it in sight. Not
    // animated: a popup that pans the map would stop a zoom half way.
    const area = layer.getBounds();
    map.fitBounds(area, {
      paddingTopLeft: [40, Math.min(260, map.getSize().y / 2)],
      paddingBottomRight: [40, 40],
      maxZoom: map.getBoundsZoom(bounds) + 4,
      animate: false,
    });
    layer.openPopup([area.getNorth(), area.getCenter().lng]);
    if (matchMedia("(max-width: 760px)").matches) scrollTo({ top: 0, behavior: still ? "auto" : "smooth" });
  });

  // The panel wraps, the window turns: the map must learn its new size.
  new ResizeObserver(() => {
    map.invalidateSize({ animate: false });
    if (atHome) home({ animate: false });
  }).observe(map.getContainer());
})();
